/** Every benchmark: its folder, and what it asks. They are loaded one a process, so that none warms or burdens another. */
export const BENCHES: Readonly<Record<string, string>> = {
  store: 'a transition against a hand-written commit, one caller and 64',
  history: 'a step with 10, 1,000 and 10,000 steps behind it',
  memory: 'the daemon idle, with parked runs, and with live ones',
  growth: 'bytes on disk a step, a long prompt over many steps, and what retention gives back',
  inbox: 'messages sent and drained, one sender and 64',
  fanout: 'events from their commit to 100 readers of the stream',
  list: 'the lists of the dashboard with 100,000 runs',
  schedule: 'firings with a million others pending',
  hooks: "a hook's command beside starting Node for nothing",
  workspace: 'opening and discarding a git transaction beside git worktree',
  limits: 'the product beside its own statements alone, and beside raw rows',
  secrets: 'looking for secrets in text on its way in and out',
}
