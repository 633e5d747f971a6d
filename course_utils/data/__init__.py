"""Data for the homeworks on translation and on images.

What comes with the installed packages works offline: `number_words`, `mnist5k`, `digits8`. Larger sets are read from
your own copy: `read_pairs`, `multi30k`, `read_idx`, `cifar10`. `download` and `download_set`
fetch files once and check them.
"""

from course_utils.data.fetch import DownloadError, download, download_set
from course_utils.data.files import DataError
from course_utils.data.image_files import cifar10, read_idx
from course_utils.data.images import Images, digits8, mnist5k
from course_utils.data.numbers_in_words import LANGUAGES, number_words
from course_utils.data.pairs import Pair, multi30k, multi30k_texts, read_pairs, split_pairs, tokenise
from course_utils.data.subwords import Subwords
from course_utils.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "LANGUAGES",
    "PAD",
    "UNK",
    "DataError",
    "DownloadError",
    "Images",
    "Pair",
    "Subwords",
    "Vocabulary",
    "cifar10",
    "digits8",
    "download",
    "download_set",
    "mnist5k",
    "multi30k",
    "multi30k_texts",
    "number_words",
    "read_idx",
    "read_pairs",
    "split_pairs",
    "tokenise",
]
