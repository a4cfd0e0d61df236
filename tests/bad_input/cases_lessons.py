"""Parameters of the lessons: told in the setup, or where the text is read, before anything is trained."""

SETUP = """
from pathlib import Path
from lesson_cells import lesson
from tfviz import text
from tfviz.suite import parameters
def written(words, count=9000):
    Path("own.txt").write_text((words + " ") * count, encoding="utf-8")
    return "own.txt"
russian, chinese = "кошка спит на окне", "我家的猫在窗台上睡觉。"
words = text.whole_words(["the cat sat on the mat"])
"""
CASES = [
    ("lesson('01', sentence='')", "sentence is ''; give a text of 1 to 12 words"),
    ("lesson('01', sentence=None)", "sentence is None"),
    ("lesson('01', dim=7)", "dim is 7; it must be a multiple of 6, such as 12"),
    ("lesson('01', dim=0)", "dim is 0; it must be from 1 to"),
    ("lesson('01', steps=1.5)", r"steps is 1\.5; give a whole number, such as 400"),
    ("lesson('01', steps=0)", "steps is 0; it must be from 1 to"),
    ("lesson('01', seed=10**30)", "seed is 10+; it must be from 0 to"),
    ("lesson('02', ratings='nothing')", "ratings is 'nothing'; it must be one of: made, movielens"),
    ("lesson('02', dim=1)", "dim is 1; it must be from 2 to"),
    ("lesson('02', splits=1)", "splits is 1; it must be from 2 to 9"),
    ("lesson('02', film='Nothing')", "film is 'Nothing'; no title begins so; there are Cold Peace, "),
    ("lesson('03', letters=1)", "letters is 1; it must be from 2 to 26"),
    ("lesson('03', people=2)", "people is 2; it must be from 4 to 1000"),
    ("lesson('04', context=30)", "context is 30; it must be a multiple of 4, such as 32"),
    ("lesson('04', heads=3)", "dim is 16; it must be a multiple of 6, such as 18"),
    ("lesson('04', corpus='nothing')", "no corpus and no file is called 'nothing'; there are: pydoc, "),
    ("lesson('04', corpus=written('a b', 99))", "corpus is 'own.txt', a text of 396 letters; give one of 1,000"),
    ("lesson('05', longest=12)", "longest is 12; it must be a power of 2, such as 8"),
    ("lesson('05', prompt='')", "prompt is ''; give letters that 'pydoc' has"),
    ("lesson('05', prompt='日本')", "prompt is '日本'; give letters that 'pydoc' has, such as 'The"),
    ("lesson('05', corpus=written(russian))", "prompt is 'The '; give letters that 'own.txt' has, such as 'кошка спи'"),
    ("lesson('05', corpus=written(''))", "a text of one letter only"),
    ("lesson('06', longest=3)", "longest is 3; it must be from 4 to 1000"),
    ("lesson('06', trainings=1)", "trainings is 1; it must be from 2 to 9"),
    ("lesson('06', languages='en xx')", "languages is 'xx'; it must be one of: en, de, fr, zh"),
    ("lesson('06', languages='de')", "date has 'novembre', a word that is not in these texts; take theirs, such as A"),
    ("lesson('06', date='November 4 , 2050')", "date has '2050', a word that is not"),
    ("lesson('06', hidden=33)", "hidden is 33; it must be a multiple of 2, such as 34"),
    ("lesson('07', task='nothing')", "task is 'nothing'; it must be one of: numbers, dates, multi30k"),
    ("lesson('07', task='dates')", "sentence has 'quatre', a word that is not in these texts"),
    ("lesson('07', sentence='Seventeen thousand cents')", "= cell 39 trains"),
    ("lesson('07', dropout=1.0)", r"dropout is 1\.0; it must be at least 0 and below 1"),
    ("lesson('08', dim=20)", "dim is 20; it must be a multiple of 8, such as 24"),
    ("lesson('08', few=0)", "few is 0; it must be from 1 to 100"),
    ("lesson('08', blocks=101)", "blocks is 101; it must be from 1 to 100"),
    ("lesson('10', reviews='nothing')", "reviews is 'nothing'; it must be one of: made, imdb"),
    ("lesson('10', sentence='the actor was 日本')", "sentence has 'actor', a word that is not in these texts; take"),
    ("lesson('11', sentence='the plot was good')", r"put bars around one word, as in 'the plot \| was \| good'"),
    ("lesson('11', sentence='a | | b')", "put bars around one word"),
    ("lesson('11', sentence='the acting | was | good')", "sentence has 'acting', a word that is not in these texts"),
    ("lesson('12', corpus=written(chinese))", "prompt is 'The '; give letters that 'own.txt' has, such as '我家的猫"),
    ("lesson('12', corpus=written(chinese), prompt='猫')", "= cell 17 trains"),
    ("lesson('12', corpus=written(russian), prompt='на ')", "= cell 17 trains"),
    ("lesson('12', prompt='x' * 99)", "prompt has 99 letters; give at most 48, which is context"),
    ("lesson('12', layers=10**12)", "layers is 10+; it must be from 1 to 100"),
    ("lesson('12', drills=True)", "drills is True; give a whole number"),
    ("lesson('13', context=30)", "context is 30; it must be a multiple of 4, such as 32"),
    ("lesson('13', drills=10)", "drills is 10; it must be from 20 to"),
    ("lesson('13', heads=3)", "dim is 16; it must be a multiple of 12, such as 24"),
    ("lesson('13', corpus=written('one two', 1000))", "a text of 8,000 letters; give one of 21,000 or more"),
    ("lesson('14', batch=6)", "batch is 6; it must be a multiple of 4, such as 8"),
    ("lesson('14', longest=16)", "longest is 16; it must be from 64 to"),
    ("lesson('15', sentence='the animal was tired')", "give a text of 11 words"),
    ("lesson('15', instead='tired')", "instead is 'tired', the last word of the sentence already; give another"),
    ("lesson('15', instead='very wide')", "instead is 'very wide'; give a text of 1 words"),
    ("lesson('15', instead='pink')", "instead has 'pink', a word that is not in these texts; take theirs, such as"),
    ("lesson('16', checkpoint=None)", "checkpoint is None; give a string"),
    ("lesson('16', sentence='What light')", "sentence is 'What light'; give a text of 3 to 20 words"),
    ("lesson('16', corpus=written('a b', 99))", "corpus is 'own.txt', a text of 396 letters; give one of 20,000"),
    ("parameters.check('99', {})", "there is no notebook '99'; there are: 01_attention_from_nothing, "),
    ("parameters.check('14_cost', {'context': 8})", "has no value; run the cell of the parameters first"),
    ("parameters.known(words, date='the dog sat')", "date has 'dog', a word that is not in these texts; .* cat, mat"),
]  # fmt: skip
