"""Bounds on what comes by chance: a test that is held to one fails by chance about once in a million runs."""

import math


def poisson_most(mean, chance=1e-6):
    """
    The least k so that more than k events of a Poisson distribution of that mean are less likely than the chance. Of a small
    mean, three standard deviations are no such bound: with a mean of 0.06 more events than that come in 6 % of all cases.
    """
    if mean == 0:
        return 0
    k, of_k, up_to_k = 0, -mean, math.exp(-mean)  # of_k: the logarithm of what k has, which is too small for a large mean
    while k < mean or 1 - up_to_k >= chance:
        k += 1
        of_k += math.log(mean / k)
        up_to_k += math.exp(of_k)
    return k
