import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'

import { Approvals } from './pages/approvals.tsx'
import { Doubts } from './pages/doubts.tsx'
import { Events } from './pages/events.tsx'
import { Home } from './pages/home.tsx'
import { Inbox } from './pages/inbox.tsx'
import { NotFound } from './pages/not-found.tsx'
import { Quotas } from './pages/quotas.tsx'
import { RunPage } from './pages/run.tsx'
import { Runs } from './pages/runs.tsx'
import { Schedules } from './pages/schedules.tsx'
import { Settings } from './pages/settings.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { ThreadPage } from './pages/thread.tsx'
import { Threads } from './pages/threads.tsx'
import { Workspaces } from './pages/workspaces.tsx'
import { Trouble } from './parts/page.tsx'
import { Shell } from './parts/shell.tsx'
import { disconnect, stayConnected } from './state/live.ts'
import { parts } from './state/router.ts'
import { caller, delay } from './state/session.ts'

type PageOf = ComponentType<{ readonly id?: string | undefined }>

/** The first part of the address; what comes after it is the id of one of them. */
const PAGES: Readonly<Record<string, PageOf>> = {
  '': Home,
  approvals: Approvals,
  doubts: Doubts,
  threads: ({ id }) => (id === undefined ? <Threads /> : <ThreadPage key={id} id={id} />),
  runs: ({ id }) => (id === undefined ? <Runs /> : <RunPage key={id} id={id} />),
  workspaces: ({ id }) => (id === undefined ? <Workspaces /> : <RunPage key={id} id={id} />),
  inbox: Inbox,
  schedules: Schedules,
  quotas: Quotas,
  events: Events,
  settings: Settings,
}

export function App() {
  const who = caller.value
  const isIn = who != null
  useEffect(() => {
    if (!isIn) return
    void stayConnected()
    return disconnect
  }, [isIn])
  if (who === undefined) return <Starting />
  if (who === null) return <SignIn />
  const [place = '', id] = parts.value
  const Shown = PAGES[place] ?? NotFound
  return (
    <Shell>
      <Shown id={id} />
    </Shell>
  )
}

/** A daemon that is just starting is waited for; if that takes longer it is said why. */
const Starting = () => (
  <main class="mx-auto max-w-xl p-4">
    <Trouble problem={delay.value} />
    {delay.value !== undefined && <p class="text-quiet px-4">It is tried again every second.</p>}
  </main>
)
