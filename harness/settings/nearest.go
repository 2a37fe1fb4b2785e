package settings

import "fmt"

// suggestion is "did you mean X? " for the valid name nearest to a wrong one, or "" when none is near enough to be
// what was meant.
func suggestion(wrong string, valid []string) string {
	best, bestAt := "", max(2, len(wrong)/3)+1
	for _, v := range valid {
		if d := distance(wrong, v); d < bestAt {
			best, bestAt = v, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? ", best)
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
