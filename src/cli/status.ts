import type { Command } from 'commander'

import { countMatters } from '../actions/desk.ts'
import { judgeProcess } from '../processes/identity.ts'
import { openBreakers } from '../runs/breaker.ts'
import { countRuns, listRuns } from '../runs/run.ts'
import { viewRun } from '../runs/view.ts'
import { liveDaemons } from '../runs/worker.ts'
import { countSchedules, troubledSchedules } from '../schedule/trouble.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { viewSchedule } from '../schedule/view.ts'
import { countWakes } from '../sessions/wake.ts'
import { countMessages } from '../threads/message.ts'
import { withRuntime } from './context.ts'
import type { Context } from './context.ts'
import { EXIT } from './exit-code.ts'
import type { SetExit } from './main.ts'
import { ago, table } from './output.ts'
import { commandLine } from './runs.ts'

const SHOWN = 20

export function addStatus(program: Command, setExit: SetExit): void {
  program
    .command('status')
    .description('what is going on')
    .action(async (_: unknown, command: Command) => setExit(await withRuntime(command, status, 'welcome')))
}

async function status({ runtime, output }: Context): Promise<number> {
  const { store, clock, home } = runtime
  const counts = Object.fromEntries((await store.read(countRuns)).map(({ state, count }) => [state, count]))
  const daemons = (await store.read(liveDaemons, null)).filter(({ identity }) => judgeProcess(identity) !== 'dead')
  const active = await store.read(listRuns, { states: ['running', 'parked', 'queued'], limit: SHOWN })
  const breakers = await store.read(openBreakers)
  const messages = Object.fromEntries((await store.read(countMessages)).map(({ state, count }) => [state, count]))
  const wakes = await store.read(countWakes)
  const needsAPerson = await store.read(countMatters)
  const schedules = Object.fromEntries((await store.read(countSchedules)).map(({ state, count }) => [state, count]))
  const troubled = await store.read(troubledSchedules, SHOWN)
  const now = clock.now()
  const value = {
    home,
    engine: store.engine,
    daemons: daemons.map(({ id, home: folder, identity }) => ({
      id,
      home: folder,
      host: identity.host,
      pid: identity.pid,
    })),
    runs: counts,
    messages,
    wakes: { total: wakes.wakes, vain: wakes.vain },
    needsAPerson,
    schedules,
    troubledSchedules: troubled.map(viewSchedule),
    active: active.map((run) => viewRun(run)),
    openBreakers: breakers.map(({ agent, cause, openUntil }) => ({
      agent,
      cause,
      openUntil: new Date(openUntil ?? 0).toISOString(),
    })),
  }
  output.result(value, () =>
    [
      daemons.length === 0
        ? 'no daemon is running (holdfast up starts one)'
        : daemons.map(({ identity }) => `daemon on ${identity.host}, process ${identity.pid}`).join('\n'),
      `runs: ${counted(counts) || 'none yet'}`,
      `messages: ${counted(messages) || 'none yet'}`,
      ...(wakes.wakes === 0 ? [] : [`wakes of idle sessions: ${wakes.wakes}, ${wakes.vain} of them in vain`]),
      ...(Object.keys(schedules).length === 0 ? [] : [`schedules and follow-ups: ${counted(schedules)}`]),
      ...describeNeed(needsAPerson),
      ...troubled.map(describeTrouble),
      ...breakers.map(({ agent, openUntil }) => {
        const until =
          (openUntil ?? 0) > now ? `until ${new Date(openUntil ?? 0).toISOString()}` : 'until its next run succeeds'
        return `agent ${agent} is stopped ${until}: its provider refuses the credentials; check its API key`
      }),
      ...(active.length === 0
        ? []
        : [
            '',
            table(
              ['RUN', 'STATE', 'SINCE', 'COMMAND'],
              active.map((run) => [run.id, run.state, ago(run.startedAt ?? run.createdAt, now), commandLine(run)]),
            ),
          ]),
    ].join('\n'),
  )
  return EXIT.done
}

const counted = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ')

function describeNeed({ approvals, doubts }: { readonly approvals: number; readonly doubts: number }): string[] {
  return [
    ...(approvals === 0 ? [] : [`waiting for a yes or a no: ${approvals} (holdfast approvals)`]),
    ...(doubts === 0 ? [] : [`in doubt, waiting for somebody who knows: ${doubts} (holdfast doubts)`]),
  ]
}

const describeTrouble = ({ name, state, reason, failures }: Schedule) =>
  `schedule ${name} ${state === 'paused' ? `is paused: ${reason ?? ''}` : `failed ${failures === 1 ? 'the last time' : `${failures} times in a row`}`} (holdfast schedule show ${name})`
