"""Homework 4, translation: what its notebook and its checks share."""
