// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Who talks to whom in which round, as SVG: time goes down, a column for each node, a
 * row for each round, an arrow with the numbers of its segments for each message. Where
 * there are too many for that, a line of text and a bar for each step in each round.
 */
#include <stdlib.h>

#include "plan.h"

/* Above these the picture is a summary */
#define MAX_COLUMNS	32
#define MAX_ROWS	128
#define MAX_LINES	96	/* of the summary */

#define LEFT	70	/* of the columns: the numbers of the rounds */
#define TOP	76	/* of the rows: title, and numbers of the nodes */
#define ROW	64
#define GAP	12	/* between the arrows of two rows */
#define MIN_WIDTH 600	/* the title's, and the key's */
#define LABEL_HEIGHT 11
#define DIGIT_WIDTH 7
#define LINE	22	/* of the summary */
#define WIDTH	960	/* of the summary */
#define BAR	160	/* the longest of the summary */

/**
 * struct label - the numbers of segments on an arrow
 * @x: middle
 * @y: foot
 * @half: half of its width
 */
struct label {
	int x;
	int y;
	int half;
};

/**
 * struct canvas - a picture under way
 * @out: where to
 * @plan: what is drawn
 * @rounds: its messages
 * @column: from node to node
 * @labels: of the round @round that are drawn, room for all messages
 * @nlabels: their number
 * @round: see @labels
 */
struct canvas {
	FILE *out;
	const struct zcoll_plan *plan;
	const struct rounds *rounds;
	int column;
	struct label *labels;
	size_t nlabels;
	u32 round;
};

static void svg_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else
			putc(*text, out);
	}
}

static void svg_begin(const struct canvas *canvas, int width, int height)
{
	FILE *out = canvas->out;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\"\n"
		"     viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		width, height, width, height);
	fputs("<style>\n"
	      "text { fill: #222; paint-order: stroke; stroke: #fff; stroke-width: 4px }\n"
	      ".title { font-size: 15px; font-weight: bold }\n"
	      ".label { font-size: 11px; text-anchor: middle }\n"
	      ".node { text-anchor: middle; font-weight: bold }\n"
	      ".life { stroke: #bbb }\n"
	      ".reduce { stroke: #0b62a4; fill: #0b62a4 }\n"
	      ".result { stroke: #2a8a3e; fill: #2a8a3e }\n"
	      "</style>\n"
	      "<defs>\n", out);
	fputs("<marker id=\"to-reduce\" class=\"reduce\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\"\n"
	      "        markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
	      "<path d=\"M0,0 L8,4 L0,8z\"/></marker>\n"
	      "<marker id=\"to-result\" class=\"result\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\"\n"
	      "        markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
	      "<path d=\"M0,0 L8,4 L0,8z\"/></marker>\n"
	      "</defs>\n", out);
	fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
	fputs("<text class=\"title\" x=\"12\" y=\"24\">", out);
	svg_escaped(out, words_name(canvas->plan));
	fprintf(out, ": %s of %u nodes, %u segment%s, %u rounds</text>\n",
		zcoll_collective_name(canvas->plan->collective), canvas->plan->nodes,
		canvas->plan->segments, canvas->plan->segments > 1 ? "s" : "",
		canvas->rounds->rounds);
}

/* Is it a result where it arrives? */
static const char *class_of(const struct zcoll_plan *plan, const struct event *event)
{
	const struct zcoll_step *match = &plan->steps[plan->steps[event->step].match];

	return match->kind == ZCOLL_STEP_DELIVER ? "result" : "reduce";
}

/* ---- the picture ---- */

static int node_x(const struct canvas *canvas, u32 node)
{
	return LEFT + canvas->column / 2 + (int)node * canvas->column;
}

static int row_y(u32 round)
{
	return TOP + (int)(round - 1) * ROW;
}

static void draw_grid(const struct canvas *canvas, int width)
{
	const int bottom = row_y(canvas->rounds->rounds + 1);
	u32 i;

	for (i = 1; i <= canvas->rounds->rounds; i++) {
		if (i & 1)
			fprintf(canvas->out, "<rect x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" "
				"fill=\"#f3f5f8\"/>\n", row_y(i), width, ROW);
		fprintf(canvas->out, "<text x=\"8\" y=\"%d\">round %u</text>\n",
			row_y(i) + ROW / 2 + 4, i);
	}
	for (i = 0; i < canvas->plan->nodes; i++) {
		fprintf(canvas->out, "<text class=\"node\" x=\"%d\" y=\"%d\">%u</text>\n",
			node_x(canvas, i), TOP - 12, i);
		fprintf(canvas->out, "<path class=\"life\" d=\"M%d,%d V%d\"/>\n",
			node_x(canvas, i), TOP - 6, bottom + 4);
	}
}

static void draw_arrow(struct canvas *canvas, const struct event *event)
{
	const char *class = class_of(canvas->plan, event);

	fprintf(canvas->out, "<path class=\"%s\" marker-end=\"url(#to-%s)\" "
		"d=\"M%d,%d L%d,%d\"/>\n", class, class, node_x(canvas, event->node),
		row_y(event->round) + GAP / 2, node_x(canvas, event->turn.peer),
		row_y(event->round + 1) - GAP / 2);
}

/* Is there room for it beside those that are drawn? Rows do not overlap. */
static bool label_fits(struct canvas *canvas, u32 round, const struct label *label)
{
	size_t i;

	if (canvas->round != round)
		canvas->nlabels = 0;
	canvas->round = round;
	for (i = 0; i < canvas->nlabels; i++) {
		const struct label *other = &canvas->labels[i];

		if (abs(other->y - label->y) < LABEL_HEIGHT &&
		    abs(other->x - label->x) < other->half + label->half)
			return false;
	}
	canvas->labels[canvas->nlabels++] = *label;
	return true;
}

/* On the arrow, near its sender, where arrows of other nodes are not yet near */
static void draw_label(struct canvas *canvas, const struct event *event)
{
	const int from = node_x(canvas, event->node), to = node_x(canvas, event->turn.peer);
	const int length = abs(to - from), near = canvas->column * 2 / 5;
	const int high = row_y(event->round) + GAP / 2;
	struct label label = {
		.x = from + (to > from ? near : -near),
		.y = high + (ROW - GAP) * near / length + 4,
	};
	char *text = NULL;
	size_t size;
	FILE *words;

	if (!event->turn.range.count || canvas->plan->segments == 1)
		return;
	words = open_memstream(&text, &size);
	if (!words)
		return;
	words_range(words, &event->turn.range, true);
	if (!fclose(words)) {
		label.half = (int)size * DIGIT_WIDTH / 2 + 2;
		if (label_fits(canvas, event->round, &label))
			fprintf(canvas->out, "<text class=\"label\" x=\"%d\" y=\"%d\">%s</text>\n",
				label.x, label.y, text);
	}
	free(text);
}

/* All messages of a round: labels last, so that no arrow crosses them */
static void draw_messages(struct canvas *canvas,
			  void (*draw)(struct canvas *, const struct event *))
{
	size_t from, at, end = 0;

	for (;;) {
		from = rounds_batch(canvas->plan, canvas->rounds, end, &end);
		if (from == canvas->rounds->count)
			break;
		for (at = from; at < end; at++)
			draw(canvas, &canvas->rounds->event[at]);
	}
}

static void draw_key(const struct canvas *canvas, int y)
{
	fprintf(canvas->out,
		"<path class=\"reduce\" marker-end=\"url(#to-reduce)\" d=\"M12,%d H52\"/>"
		"<text x=\"60\" y=\"%d\">to be reduced, or passed on</text>\n"
		"<path class=\"result\" marker-end=\"url(#to-result)\" d=\"M242,%d H282\"/>"
		"<text x=\"290\" y=\"%d\">results</text>\n"
		"<text x=\"352\" y=\"%d\">numbers: segments, where they fit</text>\n",
		y, y + 4, y, y + 4, y + 4);
}

static void draw_picture(struct canvas *canvas)
{
	const int bottom = row_y(canvas->rounds->rounds + 1);
	int width;

	canvas->column = canvas->plan->nodes <= 16 ? 72 : 48;
	width = LEFT + (int)canvas->plan->nodes * canvas->column + 12;
	if (width < MIN_WIDTH)
		width = MIN_WIDTH;
	svg_begin(canvas, width, bottom + 40);
	draw_grid(canvas, width);
	draw_messages(canvas, draw_arrow);
	canvas->labels = malloc((canvas->rounds->count + 1) * sizeof(*canvas->labels));
	if (canvas->labels)
		draw_messages(canvas, draw_label);
	free(canvas->labels);
	draw_key(canvas, bottom + 22);
	fputs("</svg>\n", canvas->out);
}

/* ---- the summary ---- */

/* Return: their number; *@most: the most messages of one */
static unsigned int count_batches(const struct canvas *canvas, size_t *most)
{
	unsigned int count = 0;
	size_t from, end = 0;

	*most = 0;
	for (;; count++) {
		from = rounds_batch(canvas->plan, canvas->rounds, end, &end);
		if (from == canvas->rounds->count)
			return count;
		if (end - from > *most)
			*most = end - from;
	}
}

/* "round 1, step 0: 64 messages: 0>1[0] 1>2[1] ..." */
static void draw_line(const struct canvas *canvas, int y, size_t most, size_t from,
		      size_t end)
{
	const struct event *event = &canvas->rounds->event[from];
	const char *class = class_of(canvas->plan, event);
	size_t count = end - from, i;
	char *text = NULL;
	size_t size;
	FILE *words;

	fprintf(canvas->out, "<text x=\"12\" y=\"%d\">round %u</text>"
		"<text x=\"90\" y=\"%d\">step %u</text>", y, event->round, y, event->step);
	fprintf(canvas->out, "<rect class=\"%s\" x=\"150\" y=\"%d\" width=\"%d\" height=\"12\"/>",
		class, y - 10, (int)((count * BAR + most - 1) / most));
	words = open_memstream(&text, &size);
	if (!words)
		return;
	fprintf(words, "%zu messages:", count);
	for (i = from; i < end && i < from + 6; i++) {
		putc(' ', words);
		words_message(words, &canvas->rounds->event[i]);
	}
	fputs(i < end ? " ..." : "", words);
	if (!fclose(words)) {
		fprintf(canvas->out, "<text x=\"%d\" y=\"%d\">", 160 + BAR, y);
		svg_escaped(canvas->out, text);
		fputs("</text>\n", canvas->out);
	}
	free(text);
}

static void draw_summary(const struct canvas *canvas)
{
	size_t most, from, end = 0;
	unsigned int lines = count_batches(canvas, &most), i;
	unsigned int shown = lines > MAX_LINES ? MAX_LINES : lines;
	int y = 56;

	svg_begin(canvas, WIDTH, y + (int)(shown + 1) * LINE);
	for (i = 0; i < shown; i++, y += LINE) {
		from = rounds_batch(canvas->plan, canvas->rounds, end, &end);
		draw_line(canvas, y, most, from, end);
	}
	if (shown < lines)
		fprintf(canvas->out, "<text x=\"12\" y=\"%d\">and %u more</text>\n", y,
			lines - shown);
	fputs("</svg>\n", canvas->out);
}

void svg_rounds(FILE *out, const struct zcoll_plan *plan, const struct rounds *rounds)
{
	struct canvas canvas = { .out = out, .plan = plan, .rounds = rounds };

	if (plan->nodes <= MAX_COLUMNS && rounds->rounds <= MAX_ROWS)
		draw_picture(&canvas);
	else
		draw_summary(&canvas);
}
