"""`autograder demo`: the whole way once, on the example class: build, release, grade in boxes, results."""

from __future__ import annotations

import shutil

from autograder.builder.generated import student_files
from autograder.builder.release import release
from autograder.classroom.report import write_report
from autograder.example_class import roster, write_class
from autograder.grading.run import Run, run
from autograder.homework import homework_names, read_homework
from autograder.places import ASSIGNMENTS, BUILD, shown
from autograder.write import write


def demo() -> int:
    """Run the demo in `build/demo/` and print where everything is."""
    folder = BUILD / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    for name in homework_names():
        homework = read_homework(name)
        print(f"1. Build {name} from {shown(homework.source)}")
        write(student_files(homework), [ASSIGNMENTS / name])
        print(f"2. Release for students: {shown(release(name, BUILD / 'release'))}")
        submissions = folder / name / "submissions"
        print(f"3. The example class: {len(write_class(homework, submissions))} submissions in {shown(submissions)}/")
        results = folder / name / "results"
        print("4. Grade it")
        finished = run(Run(source=submissions, homework=name, out=results))
        about = {student: told["about"] for student, told in roster(name).items()}
        print(f"\n   {'student':22}{'total':>6}  {'status':12}what they did")
        for outcome in finished.outcomes:
            total = f"{finished.report(outcome).total:g}"
            print(f"   {outcome.student:22}{total:>6}  {outcome.status:12}{about[outcome.student]}")
        print(f"\nReport:    {shown(write_report(results, submissions))} (the class on one page)")
        print(f"Grades:    {shown(results / 'grades.csv')}")
        print(f"Feedback:  {shown(results / 'feedback')}/<student>.html, for example {list(about)[1]}.html")
        print(f"Facts:     {shown(results / 'results.jsonl')} (the journal; docs/results.md explains it)")
        print(f"Notebook:  {shown(ASSIGNMENTS / name / (name + '.ipynb'))}, what students get")
    return 0
