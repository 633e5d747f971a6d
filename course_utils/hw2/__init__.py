"""Homework 2, multi-head attention: what its notebook and its checks share."""
