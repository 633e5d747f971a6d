"""The `course` command: doctor, start, check, progress, submit."""
