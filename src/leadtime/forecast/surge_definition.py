"""What the product calls a surge, once: a rise by half within ten minutes, judged on means of five minutes.

The detector (``surge_alarm``) and the judge (``scorecard.surge_episodes``) use the same numbers; the judge also knows
the median of the whole series, which the detector can only guess from what it has seen. Source: the data folder's
README, which counts "times the 5-minute mean rose by half or more in 10 minutes, to above the median".
"""

RISE_RATIO = 1.5
MEAN_MINUTES = 5
LOOK_BACK_MINUTES = 10
