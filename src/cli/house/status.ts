import type { Command } from 'commander'

import type { Answer } from '../../api/routes.ts'
import { withApi } from '../around/context.ts'
import type { Operator } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { ago, table } from '../words/output.ts'
import { commandLine } from '../runs/runs.ts'

export function addStatus(own: Command, setExit: SetExit): void {
  own.action(async (_: unknown, command: Command) => setExit(await withApi(command, status)))
}

async function status({ api, output, clock }: Operator): Promise<number> {
  const value = await api.call('status', {})
  output.result(value, () => describe(value, clock.now()))
  return EXIT.done
}

function describe(
  {
    daemons,
    runs,
    messages,
    wakes,
    schedules,
    workspaces,
    needsAPerson,
    troubledSchedules,
    openBreakers,
    silentRuns,
    active,
  }: Answer<'status'>,
  now: number,
) {
  return [
    daemons.length === 0
      ? 'no daemon is running (holdfast up starts one)'
      : daemons.map(({ host, pid }) => `daemon on ${host}, process ${pid}`).join('\n'),
    `runs: ${counted(runs) || 'none yet'}`,
    `messages: ${counted(messages) || 'none yet'}`,
    ...(wakes.total === 0 ? [] : [`wakes of idle sessions: ${wakes.total}, ${wakes.vain} of them in vain`]),
    ...(Object.keys(schedules).length === 0 ? [] : [`schedules and follow-ups: ${counted(schedules)}`]),
    ...(Object.keys(workspaces).length === 0 ? [] : [`workspaces: ${counted(workspaces)}`]),
    ...describeNeed(needsAPerson),
    ...troubledSchedules.map(describeTrouble),
    ...silentRuns.map(
      ({ runId, host }) => `${runId} is held by ${host}, which is silent (holdfast runs show ${runId})`,
    ),
    ...openBreakers.map(({ agent, openUntil }) => {
      const until = Date.parse(openUntil) > now ? `until ${openUntil}` : 'until its next run succeeds'
      return `agent ${agent} is stopped ${until}: its provider refuses the credentials; check its API key`
    }),
    ...(active.length === 0 ? [] : ['', describeActive(active, now)]),
  ].join('\n')
}

const describeActive = (active: Answer<'status'>['active'], now: number) =>
  table(
    ['RUN', 'STATE', 'SINCE', 'COMMAND'],
    active.map((run) => [run.id, run.state, ago(Date.parse(run.startedAt ?? run.createdAt), now), commandLine(run)]),
  )

const counted = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ')

function describeNeed({ approvals, doubts, workspaces }: Answer<'status'>['needsAPerson']): string[] {
  return [
    ...(approvals === 0 ? [] : [`waiting for a yes or a no: ${approvals} (holdfast approvals)`]),
    ...(doubts === 0 ? [] : [`in doubt, waiting for somebody who knows: ${doubts} (holdfast doubts)`]),
    ...(workspaces === 0
      ? []
      : [
          `work that waits to be landed or is in quarantine: ${workspaces} (holdfast workspace list --state ready quarantined)`,
        ]),
  ]
}

const describeTrouble = ({ name, state, reason, failures }: Answer<'status'>['troubledSchedules'][number]) =>
  `schedule ${name} ${state === 'paused' ? `is paused: ${reason ?? ''}` : `failed ${failures === 1 ? 'the last time' : `${failures} times in a row`}`} (holdfast schedule show ${name})`
