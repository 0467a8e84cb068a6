/** Immediates that were asked for and have not come. */
let waiting = 0
const immediate = setImmediate

/** From now on it is known in this process whether anything is about to happen by itself. */
export function countImmediates(): void {
  const counted = (callback: (...args: unknown[]) => void, ...args: unknown[]) => {
    waiting += 1
    return immediate(() => {
      waiting -= 1
      callback(...args)
    })
  }
  globalThis.setImmediate = counted as unknown as typeof setImmediate
}

/** One turn more than is seen to be needed: a module that is loaded already comes after a few promises. */
const QUIET_TURNS = 2

/** Lets everything that can happen at this instant happen. Files answer at once, so nothing else is waited for. */
export async function comeToRest(): Promise<void> {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet = waiting > 0 ? 0 : quiet + 1)
    await new Promise<void>((resolve) => void immediate(resolve))
}
