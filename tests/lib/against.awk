# Reads the output of several runs of tests/bench, in files named *.then.table and *.now.table, and prints the median of each row, and the
# ratio of the medians. A row's value is the service's own rate or time, or else its figure. Of a list, the last number counts: that of
# the largest canvas.

function cell(column) { return substr($0, first[column], width[column]) }

# The last number before a unit, or nothing.
function measured(text) { return match(text, /[0-9.]+ (\/s|ms|MiB|KiB)/) ? substr(text, RSTART) + 0 : "" }

function median(kind, what,    count, index_, other, held) {
    count = seen[kind, what]
    for (index_ = 1; index_ <= count; index_++) sorted[index_] = value[kind, what, index_]
    for (index_ = 2; index_ <= count; index_++) {
        held = sorted[index_]
        for (other = index_ - 1; other >= 1 && sorted[other] > held; other--) sorted[other + 1] = sorted[other]
        sorted[other + 1] = held
    }
    return sorted[int((count + 1) / 2)]
}

FNR == 1 { in_table = 0; kind = FILENAME ~ /\.now\.table$/ ? "now" : "then" }

/^-+(  -+)+$/ {
    in_table = 1
    start = 1
    columns = split($0, dashes, "  ")
    for (column = 1; column <= columns; column++) {
        first[column] = start
        width[column] = length(dashes[column])
        start += width[column] + 2
    }
    next
}

/^\[1\] / || /^$/ || /^->/ { in_table = 0 }

in_table {
    what = cell(1)
    sub(/( \[[0-9]+\])? *$/, "", what)
    number = measured(cell(2))
    if (number == "") number = measured(cell(4))
    if (number == "") number = cell(4) + 0
    if (!(what in known)) {
        known[what] = 1
        order[++rows] = what
    }
    value[kind, what, ++seen[kind, what]] = number
}

END {
    printf "\n%-70s %12s %12s %8s\n", "median of each", commit, "here", "ratio"
    for (row = 1; row <= rows; row++) {
        what = order[row]
        if (!seen["then", what] || !seen["now", what]) continue
        then = median("then", what)
        now = median("now", what)
        printf "%-70s %12g %12g %8s\n", what, then, now, (then > 0) ? sprintf("%.2f", now / then) : ""
    }
}
