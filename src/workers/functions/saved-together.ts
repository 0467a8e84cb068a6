import { afterThisTurn } from '../../base/clock.ts'

let waiting: (() => void)[] = []

/**
 * Once everything that is under way in this turn of the event loop has come as far as it can: one immediate for all the steps that end in
 * it, which are tens of thousands in a second. Only for what saves: it is done in the async context of whoever asked first, where
 * no function may begin.
 */
export function saveAfterThisTurn(save: () => void): void {
  if (waiting.push(save) === 1) afterThisTurn(saveAll)
}

function saveAll(): void {
  const saves = waiting
  waiting = []
  let next = 0
  try {
    while (next < saves.length) saves[next++]!()
  } finally {
    // One that throws is heard of, and keeps no other from its turn.
    for (; next < saves.length; next += 1) saveAfterThisTurn(saves[next]!)
  }
}
