"""From a folder or archive of submissions to a journal, grades and feedback: collect, run, journal, scores, pages."""
