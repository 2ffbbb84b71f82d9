"""The connections of browsers: how many there may be, what they may say, who does not read what he asked for, who has left."""
