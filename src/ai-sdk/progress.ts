import { isDeepStrictEqual } from 'node:util'

/*
 * A tool of the AI SDK may be a generator: what it yields is told to whoever watches, and the last of it is its result. The
 * result alone is recorded, so from the record there is nothing to watch.
 */

export type Tell = (progress: unknown) => void

const GENERATOR = '[object AsyncGeneratorFunction]'

export const tellsProgress = ({ execute }: { readonly execute: unknown }): boolean =>
  Object.prototype.toString.call(execute) === GENERATOR

/** Of what it yields the last, or what it returns. */
export async function lastOf(result: unknown, tell: Tell = () => {}): Promise<unknown> {
  const said = await result
  if (typeof said !== 'object' || said === null || !(Symbol.asyncIterator in said)) return said
  let last: unknown
  for await (const each of said as AsyncIterable<unknown>) tell((last = each))
  return last
}

/** Begins at once, where it is called; what it tells can be heard as it comes, and at the end its result. */
export function withProgress(work: (tell: Tell) => Promise<unknown>): AsyncIterable<unknown> {
  const told: unknown[] = []
  let hear = () => {}
  const result = work((progress) => {
    told.push(progress)
    hear()
  })
  // Whoever listens hears of it there.
  result.catch(() => {})
  return (async function* () {
    let last: unknown
    for (let isOver = false; !isOver;) {
      const news = new Promise<boolean>((resolve) => (hear = () => resolve(false)))
      if (told.length === 0) isOver = await Promise.race([news, result.then(() => true)])
      for (const each of told.splice(0)) yield (last = each)
    }
    const whole = await result
    // The last that it told is its result already.
    if (last === undefined || !isDeepStrictEqual(last, whole)) yield whole
  })()
}
