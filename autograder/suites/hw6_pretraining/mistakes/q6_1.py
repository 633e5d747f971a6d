# %% no-root
"""Your result is the mean of the squares: of 1 and 7 it would be 25. Which step is left?"""
# TODO: known wrong answers, at least four: what a good TA would say, then what differs from the reference's answer
replace(" ** 0.5", "")


# %% sum-for-mean
"""Your result grows with the length of the list. What does a mean divide by?"""
replace(" / max(len(numbers), 1)", "")
