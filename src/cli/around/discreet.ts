/** For what is said before, or without, opening a home folder: nothing of what the environment gives away. */
export async function beDiscreet(): Promise<void> {
  // Most commands open a home folder, which knows more, and need not load this.
  const { hideEnvironment } = await import('../../secrets/own-process.ts')
  hideEnvironment(process.env)
}
