"""A locale of libc with rules of its own, which need not be on the machine: made out of its source."""

import contextlib
import os
import shutil
import subprocess
import tempfile

SOURCES = '/usr/share/i18n/locales'
RULES = ('en_US', 'de_DE', 'sv_SE', 'ja_JP')    # locales whose orders differ


def make_locale(place, name='en_US'):
    """Makes the locale `name`.utf8 in the folder `place`, for servers that are started with LOCPATH=place.
    Returns why it cannot be made, or None."""
    if not os.path.exists(os.path.join(SOURCES, name)) or shutil.which('localedef') is None:
        return 'no localedef, or no sources of locales'
    os.chmod(place, 0o755)
    made = subprocess.run(['localedef', '--no-archive', '-i', name, '-f', 'UTF-8',
                           os.path.join(place, name + '.utf8')], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return made.stdout if made.returncode != 0 else None


@contextlib.contextmanager
def at_hand(*names):
    """For servers that are started meanwhile, the locales `names`.utf8 (en_US if none is named) are there: the
    machine's, or made and taken away again.  Gives why there are none, or None."""
    names = names or ('en_US',)
    known = subprocess.run(['locale', '-a'], text=True, stdout=subprocess.PIPE).stdout.split()
    if all(name + '.utf8' in known for name in names):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix='wiscsort-locale-') as place:
        lacking = make_locales(place, names)
        before = os.environ.get('LOCPATH')
        if lacking is None:
            os.environ['LOCPATH'] = place
        try:
            yield lacking
        finally:
            if before is not None:
                os.environ['LOCPATH'] = before
            else:
                os.environ.pop('LOCPATH', None)


def make_locales(place, names=RULES):
    """Makes several, as make_locale does."""
    reasons = [make_locale(place, name) for name in names]
    return next((reason for reason in reasons if reason is not None), None)


def collation(name):
    """The statement that creates the collation of one of them."""
    return 'CREATE COLLATION "%s.utf8" (provider = libc, locale = \'%s.utf8\')' % (name, name)
