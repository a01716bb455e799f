/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Which of some names did the user mean?
 */
#ifndef ZCOLL_SUGGEST_H
#define ZCOLL_SUGGEST_H

/*
 * suggest - the name that is closest to a word
 * @word: what was typed
 * @name: gives the names 0, 1, ...; NULL after the last
 *
 * Returns NULL if none is close.
 */
const char *suggest(const char *word, const char *(*name)(unsigned int i));

#endif /* ZCOLL_SUGGEST_H */
