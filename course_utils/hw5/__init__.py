"""Homework 5, vision: what its notebook and its checks share."""
