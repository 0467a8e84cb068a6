const CONTEXT = 3

interface Line {
  readonly mark: ' ' | '-' | '+'
  readonly text: string
}

/** What `diff -u` would say; nothing for equal texts. */
export function unifiedDiff(path: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  const lines = compared(linesOf(before), linesOf(after))
  const head = [
    before === undefined ? '--- /dev/null' : `--- ${path}`,
    after === undefined ? '+++ /dev/null' : `+++ ${path}`,
  ]
  return `${[...head, ...hunks(lines)].join('\n')}\n`
}

function linesOf(text: string | undefined): string[] {
  if (text === undefined || text === '') return []
  const lines = text.split('\n')
  if (lines.at(-1) === '') return lines.slice(0, -1)
  return [...lines.slice(0, -1), `${lines.at(-1)}\n\\ No newline at end of file`]
}

function compared(before: readonly string[], after: readonly string[]): Line[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1
  let end = 0
  const shorter = Math.min(before.length, after.length) - start
  while (end < shorter && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const same = (text: string): Line => ({ mark: ' ', text })
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ]
}

/** The longest common subsequence, by the table: settings are small, and their ends are equal. */
function middle(before: readonly string[], after: readonly string[]): Line[] {
  const width = after.length + 1
  const lengths = new Uint32Array((before.length + 1) * width)
  const at = (i: number, j: number) => lengths[i * width + j]!
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push({ mark: ' ', text: before[i++]! })
      j += 1
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ mark: '-', text: before[i++]! })
    } else lines.push({ mark: '+', text: after[j++]! })
  }
  return lines
}

/** Changes with some lines around them; those that are near each other in one piece. */
function hunks(lines: readonly Line[]): string[] {
  const near = (index: number) =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ mark }) => mark !== ' ')
  const shown = lines.map((_, index) => near(index))
  return lines.flatMap((_, index) => {
    if (!shown[index] || shown[index - 1] === true) return []
    const stop = shown.indexOf(false, index)
    const hunk = lines.slice(index, stop === -1 ? lines.length : stop)
    return [place(lines.slice(0, index), hunk), ...hunk.map(({ mark, text }) => `${mark}${text}`)]
  })
}

function place(before: readonly Line[], hunk: readonly Line[]): string {
  const count = (lines: readonly Line[], not: '-' | '+') => lines.filter(({ mark }) => mark !== not).length
  const range = (not: '-' | '+') => {
    const length = count(hunk, not)
    return `${count(before, not) + (length === 0 ? 0 : 1)},${length}`
  }
  return `@@ -${range('+')} +${range('-')} @@`
}

/** For a terminal: what goes is red, what comes is green. */
export const coloured = (diff: string): string =>
  diff.replaceAll(/^([-+@]).*$/gm, (line, mark: string) => {
    const colour = mark === '-' ? 31 : mark === '+' ? 32 : 36
    return `\u001b[${colour}m${line}\u001b[0m`
  })
