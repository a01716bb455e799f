// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Charts in SVG; see chart.h. Two panels stand in a row. Axes have a line for each
 * power of 10 (times, ns) and of 1024 or 32 (bytes).
 */
#include <math.h>
#include <stdbool.h>

#include "chart.h"

#define WIDTH	460	/* of a panel's axes */
#define HEIGHT	300
#define LEFT	70
#define TOP	140
#define LEGEND	75
#define LINE_HEIGHT 16
#define COLUMNS	3	/* of the legend */
#define STEP_X	(WIDTH + LEFT + 30)
#define STEP_Y	(HEIGHT + 70)

/*
 * Okabe and Ito's colours, which those who are colour-blind can tell apart. Once all are taken,
 * lines are broken, so that what lies beneath is seen, too.
 */
static const char *const colours[] = {
	"#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
};

#define NCOLOURS ((int)(sizeof(colours) / sizeof(colours[0])))

static void stroke(FILE *out, const struct chart_line *line, int i)
{
	if (line->style == CHART_BAND)
		fputs("fill=\"none\" stroke=\"#ccc\" stroke-width=\"8\"", out);
	else if (line->style == CHART_BOUND)
		fputs("fill=\"none\" stroke=\"#000\" stroke-width=\"2\" stroke-dasharray=\"6 4\"",
		      out);
	else
		fprintf(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s",
			colours[i % NCOLOURS],
			i / NCOLOURS % 2 ? " stroke-dasharray=\"3 3\"" : "");
}

void chart_begin(FILE *out, const char *title, const char *const *notes, int panels)
{
	int width = (panels > 1 ? 2 : 1) * STEP_X;
	int height = TOP + (panels + 1) / 2 * STEP_Y;
	int i;

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"%d\" y=\"20\" font-size=\"15\">%s</text>\n",
		width, height, width, height, LEFT, title);
	for (i = 0; notes[i]; i++)
		fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"#444\">%s</text>\n", LEFT,
			38 + i * LINE_HEIGHT, notes[i]);
}

/* A range of powers of ten around all values */
static void range(const struct chart_panel *panel, double *low, double *high)
{
	int i, j;

	*low = HUGE_VAL;
	*high = 0;
	for (i = 0; i < panel->nlines; i++)
		for (j = 0; j < panel->points; j++) {
			double y = panel->lines[i].y[j];

			if (y <= 0)
				continue;
			*low = fmin(*low, y);
			*high = fmax(*high, y);
		}
	*low = *high ? floor(log10(*low)) : 0;
	*high = *high ? ceil(log10(*high)) : 1;
	if (*high == *low)
		*high += 1;
}

static double x_at(const struct chart_panel *panel, double x)
{
	double first = log2(panel->x[0]), last = log2(panel->x[panel->points - 1]);

	return last > first ? (log2(x) - first) / (last - first) * WIDTH : 0;
}

static void axis_x(FILE *out, const struct chart_panel *panel)
{
	static const char units[] = " KMGT";
	double x;
	int power;

	for (power = 0; power <= 40; power += 5) {
		x = exp2(power);
		if (x < panel->x[0] || x > panel->x[panel->points - 1])
			continue;
		fprintf(out, "<path d=\"M%.1f 0v%d\" stroke=\"#ddd\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d %.*s%s</text>\n",
			x_at(panel, x), HEIGHT, x_at(panel, x), HEIGHT + 16, 1 << power % 10,
			power >= 10, units + power / 10, power >= 10 ? "iB" : "B");
	}
}

static void axis_y(FILE *out, double low, double high)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int power;

	for (power = (int)low; power <= (int)high; power++) {
		double y = HEIGHT - (power - low) / (high - low) * HEIGHT;
		int unit = power < 0 ? 0 : power / 3 > 3 ? 3 : power / 3;

		fprintf(out, "<path d=\"M0 %.1fh%d\" stroke=\"#ddd\"/>"
			"<text x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%g %s</text>\n",
			y, WIDTH, y + 4, pow(10, power - 3 * unit), units[unit]);
	}
}

/* A line is broken where points are missing. Return: it has points */
static bool line(FILE *out, const struct chart_panel *panel, int i, double low, double high)
{
	const struct chart_line *l = &panel->lines[i];
	bool pen = false, any = false;
	int j;

	for (j = 0; j < panel->points; j++)
		any |= l->y[j] > 0;
	if (!any)
		return false;
	fputs("<path d=\"", out);
	for (j = 0; j < panel->points; j++) {
		if (l->y[j] > 0)
			fprintf(out, "%c%.1f %.1f", pen ? 'L' : 'M', x_at(panel, panel->x[j]),
				HEIGHT - (log10(l->y[j]) - low) / (high - low) * HEIGHT);
		pen = l->y[j] > 0;
	}
	fputs("\" ", out);
	stroke(out, l, i);
	fprintf(out, "><title>%s</title></path>\n", l->name);
	return true;
}

unsigned int chart_panel(FILE *out, int index, const struct chart_panel *panel)
{
	unsigned int drawn = 0;
	double low, high;
	int i;

	range(panel, &low, &high);
	fprintf(out, "<g transform=\"translate(%d %d)\">\n<text x=\"0\" y=\"-8\" "
		"font-size=\"13\">%s</text>\n", LEFT + index % 2 * STEP_X,
		TOP + index / 2 * STEP_Y + 20, panel->title);
	axis_x(out, panel);
	axis_y(out, low, high);
	fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#666\"/>\n", WIDTH,
		HEIGHT);
	for (i = 0; i < panel->nlines; i++)
		drawn |= (unsigned int)line(out, panel, i, low, high) << i;
	fputs("</g>\n", out);
	return drawn;
}

void chart_end(FILE *out, const struct chart_panel *panel, unsigned int drawn)
{
	int i, n = 0;

	for (i = 0; i < panel->nlines; i++) {
		int x = LEFT + n % COLUMNS * 155, y = LEGEND + n / COLUMNS * LINE_HEIGHT;

		if (!(drawn >> i & 1))
			continue;
		fprintf(out, "<path d=\"M%d %dh24\" ", x, y);
		stroke(out, &panel->lines[i], i);
		fprintf(out, "/><text x=\"%d\" y=\"%d\">%s</text>\n", x + 30, y + 4,
			panel->lines[i].name);
		n++;
	}
	fputs("</svg>\n", out);
}
