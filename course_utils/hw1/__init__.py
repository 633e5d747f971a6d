"""Homework 1, attention: what its notebook and its checks share."""
