/**
 * Ctrl-C, TERM, a closed terminal and a reader that went away mean the same: cancel, durably, and stop what runs. One that
 * comes before the run is stored is kept until it is.
 */
export function whenToldToStop(broken?: Promise<void>): {
  cancel(how: (by: string) => Promise<void> | void): void
  ignore(): void
} {
  let told = (_by: string) => {}
  const first = new Promise<string>((tell) => (told = tell))
  const onSignal = (signal: NodeJS.Signals) => told(signal)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  void broken?.then(() => told('broken pipe'))
  return {
    cancel: (how) => void first.then(how),
    ignore() {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
