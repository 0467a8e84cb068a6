import type { Api } from '../../api/client.ts'
import type { Candidate } from './complete.ts'

/** More than anybody reads; fewer would hide what was meant. */
const MOST = 50

type Lister = (api: Api) => Promise<Candidate[]>

const described = (word: string, ...about: readonly (string | undefined)[]): Candidate => ({
  word,
  description: about.filter((part) => part !== undefined && part !== '').join(', '),
})

const threads: Lister = async (api) =>
  (await api.call('threads.list', { limit: MOST })).items.map(({ id, agent, doing }) => described(id, agent, doing))

const schedules: Lister = async (api) =>
  (await api.call('schedules.list', { limit: MOST })).items.map(({ id, name, state }) => described(name ?? id, state))

/** By the word that the help has in the place of an id. */
export const LISTERS: Readonly<Record<string, Lister>> = {
  run: async (api) =>
    (await api.call('runs.list', { limit: MOST })).items.map(({ id, agent, state }) => described(id, agent, state)),
  thread: threads,
  parent: threads,
  agent: async (api) => (await api.call('agents.list', {})).items.map(({ name }) => described(name)),
  approval: async (api) =>
    (await api.call('approvals.list', { limit: MOST })).items.map(({ id, tool }) => described(id, tool)),
  doubt: async (api) =>
    (await api.call('doubts.list', { limit: MOST })).items.map(({ id, tool }) => described(id, tool)),
  schedule: schedules,
  message: async (api) =>
    (await api.call('messages.list', { limit: MOST })).items.map(({ id, kind, state }) => described(id, kind, state)),
  token: async (api) => (await api.call('tokens.list', {})).items.map(({ id, name }) => described(id, name)),
}
