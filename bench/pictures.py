"""Pictures of ratios as SVG: groups of bars with whiskers, and a line at ratio 1.

A picture is 800 wide, has a white ground, and names everything that it shows:
the title, the axes, the colours, the line at 1 and the whiskers.  The same
groups give the same bytes.
"""

from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT = 800, 440
LEFT, RIGHT, TOP, BOTTOM = 66, 16, 96, 44       # free beside the plot; BOTTOM without the labels
COLOURS = ('#0072b2', '#e69f00', '#009e73', '#cc79a7')
INK, FAINT, BASE = '#1a1a1a', '#d8d8d8', '#b00020'
DASHED, BASE_DASHED = ' stroke-dasharray="4 2"', ' stroke-dasharray="6 4"'
FONT = 'DejaVu Sans, Verdana, Helvetica, Arial, sans-serif'
GROUP_SHARE = 0.72              # of a group's width that its bars take
WIDEST_BAR = 64
LINE = 16                       # from one line of a label to the next
CHARACTER = 0.60                # width of a character, of the font's size
NARROW_BAR = 34                 # no room for two decimals above it
TINY_BAR = 16                   # nor for any number


class Bar:
    """One bar: the quartiles of its ratio, and the ratio that is required, if one is."""

    def __init__(self, ratio, need=None):
        self.low, self.median, self.high = ratio
        self.need = need


def _number(value):
    """A coordinate, at most one decimal, without a superfluous one."""
    text = '%.1f' % value
    return text[:-2] if text.endswith('.0') else text


def _text(x, y, content, size=13, anchor='start', weight='normal', more=''):
    return ('<text x="%s" y="%s" font-size="%d" text-anchor="%s" font-weight="%s"%s>%s</text>'
            % (_number(x), _number(y), size, anchor, weight, more, escape(content)))


def _line(x1, y1, x2, y2, colour, width=1, more=''):
    return ('<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>'
            % (_number(x1), _number(y1), _number(x2), _number(y2), colour, width, more))


def _rectangle(x, y, width, height, colour):
    return ('<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>'
            % (_number(x), _number(y), _number(width), _number(height), colour))


def _step(top):
    """The distance of the axis' marks, for some four to eight of them."""
    for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        if top / step <= 8:
            return step
    return top / 8


def _wrapped(label, width, size):
    """The label in lines that fit into the width, broken at spaces."""
    room, lines = max(int(width / (size * CHARACTER)), 1), []
    for part in label.split('\n'):
        lines.append('')
        for word in part.split(' '):
            if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
                lines.append(word)
            else:
                lines[-1] = (lines[-1] + ' ' + word).strip()
    return lines


def _legend(series, needs, y):
    """What the colours and marks mean, from left to right."""
    out, x = [], LEFT
    for colour, name in zip(COLOURS, series):
        out += [_rectangle(x, y - 11, 14, 14, colour), _text(x + 20, y, name)]
        x += 20 + len(name) * 13 * CHARACTER + 22
    out += [_line(x + 6, y - 12, x + 6, y + 4, INK, 1.5), _line(x + 1, y - 12, x + 11, y - 12, INK, 1.5),
            _line(x + 1, y + 4, x + 11, y + 4, INK, 1.5), _text(x + 19, y, 'quartiles')]
    x += 19 + len('quartiles') * 13 * CHARACTER + 22
    if needs:
        out += [_line(x, y - 4, x + 18, y - 4, INK, 3, DASHED), _text(x + 25, y, 'required')]
        x += 25 + len('required') * 13 * CHARACTER + 22
    out += [_line(x, y - 4, x + 22, y - 4, BASE, 1.5, BASE_DASHED), _text(x + 29, y, '1 = no difference')]
    return out


def _bar(bar, x, width, height, colour):
    """A bar; `height` gives the y of a ratio."""
    middle, out = x + width / 2, []
    out.append(_rectangle(x, height(bar.median), width, height(0) - height(bar.median), colour))
    out.append(_line(middle, height(bar.low), middle, height(bar.high), INK, 1.5))
    for end in (bar.low, bar.high):
        out.append(_line(middle - 5, height(end), middle + 5, height(end), INK, 1.5))
    if bar.need:
        y = height(bar.need)
        out.append(_line(x - 6, y, x + width + 6, y, INK, 3, DASHED))
    if width < TINY_BAR:
        return out
    value = '%.2f' % bar.median
    if width < NARROW_BAR:
        value = '%.1f' % bar.median if bar.median < 9.95 else '%.0f' % bar.median
    out.append(_text(middle, height(max(bar.high, bar.median)) - 6, value, 12, 'middle', 'bold'))
    return out


def bars(title, note, x_label, y_label, series, groups):
    """An SVG document.  `series` names the colours, at most four; `groups` is a list
    of (label, one Bar or None for each of the series)."""
    shown = [bar for _, group in groups for bar in group if bar]
    top = max([1.0] + [bar.high for bar in shown] + [bar.need or 0 for bar in shown]) * 1.1
    step = _step(top)
    space = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    labels = [_wrapped(label, space - 6, 13) for label, _ in groups]
    bottom = HEIGHT - BOTTOM - LINE * max(map(len, labels), default=1)

    def height(ratio):
        return bottom - ratio / top * (bottom - TOP)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img"'
           % (WIDTH, HEIGHT, WIDTH, HEIGHT),
           ' aria-label=%s font-family="%s" fill="%s">' % (quoteattr(title), FONT, INK),
           '<title>%s</title>' % escape(title),
           _rectangle(0, 0, WIDTH, HEIGHT, '#ffffff'),
           _text(LEFT, 28, title, 18, weight='bold'), _text(LEFT, 51, note)]
    out += _legend(series, any(bar.need for bar in shown), 77)
    mark = 0
    while mark * step <= top:
        y = height(mark * step)
        out += [_line(LEFT, y, WIDTH - RIGHT, y, FAINT),
                _text(LEFT - 8, y + 5, '%g' % round(mark * step, 6), 13, 'end')]
        mark += 1
    width = min(space * GROUP_SHARE / len(series), WIDEST_BAR)
    for place, (_, group) in enumerate(groups):
        middle = LEFT + (place + 0.5) * space
        for number, bar in enumerate(group):
            if bar:
                x = middle + (number - len(series) / 2) * width
                out += _bar(bar, x + 2, width - 4, height, COLOURS[number])
        for number, text in enumerate(labels[place]):
            out.append(_text(middle, bottom + 19 + number * LINE, text, 13, 'middle'))
    # Above the bars, so that it can be seen in front of them.
    side = (TOP + bottom) / 2
    out += [_line(LEFT, height(1), WIDTH - RIGHT, height(1), BASE, 1.5, BASE_DASHED),
            _line(LEFT, bottom, WIDTH - RIGHT, bottom, INK, 1.5), _line(LEFT, TOP, LEFT, bottom, INK, 1.5),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 11, x_label, 13, 'middle'),
            _text(20, side, y_label, 13, 'middle', more=' transform="rotate(-90 20 %s)"' % _number(side)),
            '</svg>']
    return '\n'.join(out) + '\n'
