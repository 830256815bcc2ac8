"""What the commands do, in files of the commands' names, and what several of them share."""
