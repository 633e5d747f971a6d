"""Homework 3, blocks: what its notebook and its checks share."""
