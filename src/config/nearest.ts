/** Nobody mistypes a longer one; comparing two takes as long as their lengths multiplied. */
const LONGEST_WORD = 100

/** The known word that was probably meant: at most a third of its letters are different. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > LONGEST_WORD) return undefined
  const ranked = known
    .filter((each) => each.length <= LONGEST_WORD)
    .map((each) => ({ each, distance: editDistance(word.toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, distance }) => distance <= Math.max(1, Math.floor(Math.max(each.length, word.length) / 3)))
  return ranked.toSorted((a, b) => a.distance - b.distance)[0]?.each
}

/** Letters to add, drop, change, or swap with their neighbour. */
function editDistance(from: string, to: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1
      const swapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1] ? (before[j - 2] ?? i + j) + 1 : i + j
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same, swapped))
    }
    ;[before, row] = [row, next]
  }
  return row[to.length] ?? 0
}
