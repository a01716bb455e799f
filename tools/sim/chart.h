/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Charts in SVG: panels of lines over logarithmic axes.
 */
#ifndef ZCOLL_SIM_CHART_H
#define ZCOLL_SIM_CHART_H

#include <stdio.h>

enum chart_style {
	CHART_LINE,
	CHART_BAND,		/* a broad grey band, behind the lines that come later */
	CHART_BOUND,		/* black and dashed: not measured */
};

/**
 * struct chart_line - a line
 * @name: for the legend
 * @y: values; 0: no point
 * @style: enum chart_style
 */
struct chart_line {
	const char *name;
	const double *y;
	enum chart_style style;
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

/* @notes: what is to be known, lines of text ended by NULL */
void chart_begin(FILE *out, const char *title, const char *const *notes, int panels);

/* Return: a bit for each line that has points */
unsigned int chart_panel(FILE *out, int index, const struct chart_panel *panel);

/* The legend: those lines of the last panel that have points in any, by their bits */
void chart_end(FILE *out, const struct chart_panel *panel, unsigned int drawn);

#endif /* ZCOLL_SIM_CHART_H */
