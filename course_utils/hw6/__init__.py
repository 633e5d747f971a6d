"""Homework 6: what its notebook and its checks share."""
