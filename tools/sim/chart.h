/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Charts in SVG: panels of lines over logarithmic axes.
 */
#ifndef ZCOLL_SIM_CHART_H
#define ZCOLL_SIM_CHART_H

#include <stdio.h>

/**
 * struct chart_line - a line
 * @name: for the legend
 * @y: values; 0: no point
 * @bound: black and dashed: not measured
 */
struct chart_line {
	const char *name;
	const double *y;
	int bound;
};

/**
 * struct chart_panel - lines in one pair of axes
 * @title: above it
 * @x: bytes, rising
 * @points: their number
 * @lines: lines
 * @nlines: their number
 */
struct chart_panel {
	const char *title;
	const double *x;
	int points;
	const struct chart_line *lines;
	int nlines;
};

void chart_begin(FILE *out, const char *title, int panels, const struct chart_panel *legend);
void chart_panel(FILE *out, int index, const struct chart_panel *panel);
void chart_end(FILE *out);

#endif /* ZCOLL_SIM_CHART_H */
