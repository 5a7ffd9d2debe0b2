"""Errors of file system calls, as the exceptions Python's own calls raise for the same errno."""

import errno
import os


def fs_error(number: int, what: str) -> OSError:
    """Return the OSError (FileNotFoundError, FileExistsError, ...) of an errno about `what`."""
    return OSError(number, os.strerror(number), what)


def not_found(what: str) -> OSError:
    """ENOENT."""
    return fs_error(errno.ENOENT, what)


def exists(what: str) -> OSError:
    """EEXIST."""
    return fs_error(errno.EEXIST, what)


def not_a_directory(what: str) -> OSError:
    """ENOTDIR."""
    return fs_error(errno.ENOTDIR, what)


def is_a_directory(what: str) -> OSError:
    """EISDIR."""
    return fs_error(errno.EISDIR, what)


def not_empty(what: str) -> OSError:
    """ENOTEMPTY."""
    return fs_error(errno.ENOTEMPTY, what)


def no_space(what: str, mounted_on: str) -> OSError:
    """ENOSPC; the text says that the simulated server's disk is full, not the user's."""
    return fs_error(errno.ENOSPC, f"{what} of the server's {mounted_on or 'file system'}")


def not_supported(what: str) -> OSError:
    """EOPNOTSUPP."""
    return fs_error(errno.EOPNOTSUPP, what)


def invalid(what: str) -> OSError:
    """EINVAL."""
    return fs_error(errno.EINVAL, what)


def bad_file(what: str) -> OSError:
    """EBADF."""
    return fs_error(errno.EBADF, what)


def busy(what: str) -> OSError:
    """EBUSY."""
    return fs_error(errno.EBUSY, what)


def bad_address(what: str) -> OSError:
    """EFAULT."""
    return fs_error(errno.EFAULT, what)
