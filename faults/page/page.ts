/** docs/reliability.md: every figure on it comes from faults/totals.json, the words from the tables beside this file. */
import { table } from '../../scripts/docs/markdown.ts'
import { progressOf } from '../rounds.ts'
import type { Progress } from '../rounds.ts'
import type { CampaignTotal, Total, Totals } from '../totals.ts'
import { recoveredWithin } from './charts.ts'
import type { Plot } from './charts.ts'
import { DESCRIBED, HARMS, countedBy } from './described.ts'
import type { Described, Goal, Harm } from './described.ts'
import { EXPLAINED, FOUND } from './found.ts'
import { OTHERS } from './others.ts'
import type { Other } from './others.ts'

const HEAD = `# Reliability

<!-- Written by \`npm run faults:page\` from faults/totals.json. -->

What went wrong on purpose, how often, and what came of it. Twelve methods look for faults, from simulated worlds to real processes under kill -9; effects are counted by a ledger
outside of the product that shares no code with it. Every figure here is the sum of campaigns that are listed below with their seeds and commits; no figure was typed.`

const OWN = `\`\`\`sh
npm run faults                                            # a minute of each method
npm run faults -- --method kill --minutes 80              # a deep run of one
npm run faults -- --method simulation --seed 4711 --cases 1   # one case again
npm run faults:page                                       # this page, from what has come together
\`\`\`

A campaign goes on with the seed at which the last one ended, and adds what it saw to \`faults/totals.json\`, every two minutes and when it is interrupted. A failure is printed with its seed, and the first of them is made shorter as long as it
still fails: a world, a sequence or an input by leaving out what is not needed; a plan for real processes by playing it with less in it; a case of a table, a scene of kill and a life of power-loss are one story each, and told as they are. A method that is a table goes round it, however many campaigns that takes. With a seed a case is repeated, and nothing is added. What was counted in two clones is put together by
\`node faults/merge.ts INTO.json FROM.json\`, and what both have is counted once. A short, fixed set of every method is part of \`npm test\`. How far a case is determined by its seed depends on what is real in it: a simulated world is the same to
the last statement, with real processes the seed draws the scenario, the fault and its place, and the kernel does the rest.`

const number = (value: number) => Math.floor(value).toLocaleString('en-US')
const sumOf = (totals: readonly Total[], of: (total: Total) => number) =>
  totals.reduce((sum, total) => sum + of(total), 0)

export function writePage(totals: Totals, plotsOf: (described: Described, total: Total) => readonly Plot[]): string {
  const parts = [
    HEAD,
    summary(totals),
    table(['what would be wrong', 'looked for by', 'cases', 'found'], harmRows(totals)),
    failures(totals),
    '## The methods, and how far they are',
    'A deep run is what one method should reach in up to 80 minutes on two cores; what is counted here is all campaigns together. The seeds of a campaign may have gaps: several processes take them in turns, and what was under way when its time was over is not counted.',
    table(
      ['method', 'cases', 'faults', 'failures', 'recovered: half, 99 of 100', 'a deep run', 'reached'],
      methodRows(totals),
    ),
    ...DESCRIBED.flatMap((described) => section(described, totals[described.name], plotsOf)),
    '## What was found',
    'Faults of the product that these campaigns brought to light. Each is mended in its mechanism, and has a test that fails without it.',
    table(
      ['by', 'what happened', 'what happens now'],
      FOUND.map(({ method, what, now }) => [method, what, now]),
    ),
    '## Run it yourself',
    OWN,
    '## What others publish',
    'From their own pages and from analyses of them, as of November 2026. Databases and queues are here because their methods are the models for ours.',
    table(['who', 'how', 'figures', 'source'], OTHERS.map(otherRow)),
    'Corrections are welcome.',
  ]
  return `${parts.join('\n\n')}\n`
}

const otherRow = ({ what, how, figures: published, source: [words, url] }: Other) => [
  what,
  how,
  published,
  `[${words}](${url})`,
]

function summary(totals: Totals): string {
  const seen = Object.values(totals)
  if (seen.length === 0) return 'No campaign has been run yet.'
  const runs = `${number(sumOf(seen, (total) => total.runs))} runs`
  const effects = `${number(sumOf(seen, (total) => total.effects))} effects`
  const cases = `${number(sumOf(seen, (total) => total.cases))} cases`
  const failed = sumOf(seen, (total) => total.failures)
  const hours = (sumOf(seen, (total) => total.seconds) / 3_600).toFixed(1)
  return `**${counted(totals).join(', ')}** in ${cases}, with ${runs} and ${effects}, in ${hours} hours: **${failed === 0 ? 'no failure' : `${number(failed)} failing cases`}**.`
}

/** Faults are what went wrong; inputs, disks and commands are counted apart. */
function counted(totals: Totals): string[] {
  const words = Map.groupBy(
    DESCRIBED.filter((described) => ran(described, totals)),
    ({ counts = 'faults' }) => counts,
  )
  return [...words].map(([what, methods]) => {
    const sum = methods.reduce((all, described) => all + countedBy(described, totals[described.name]!), 0)
    return `${number(sum)} ${what}`
  })
}

const names = (methods: readonly Described[]) => methods.map(({ name }) => name).join(', ')

const ran = ({ name }: Described, totals: Totals) => (totals[name]?.cases ?? 0) > 0

function harmRows(totals: Totals): string[][] {
  return (Object.keys(HARMS) as Harm[]).map((harm) => {
    const methods = DESCRIBED.filter((described) => described.sees.includes(harm) && ran(described, totals))
    const seen = methods.map((described) =>
      lookedForIn(described.name, totals[described.name]!, described.later?.[harm]),
    )
    const missing = DESCRIBED.filter((described) => described.sees.includes(harm) && !ran(described, totals))
    const by = [names(methods), ...(missing.length === 0 ? [] : [`not yet by ${names(missing)}`])].filter(
      (words) => words !== '',
    )
    const looked = seen.reduce((all, { cases }) => all + cases, 0)
    return [HARMS[harm], by.join('; '), number(looked), verdict(harm, seen, totals)]
  })
}

interface Looked {
  readonly cases: number
  readonly unexplained: number
}

/** All that a method has run, or what it ran since it looks for this, `from`. */
function lookedForIn(method: string, { cases, campaigns }: Total, from = ''): Looked {
  const later = campaigns.filter(({ at }) => at >= from)
  const sum = (of: (campaign: CampaignTotal) => number) => later.reduce((all, campaign) => all + of(campaign), 0)
  const explained = (campaign: CampaignTotal) => namesOf(method, campaign).filter((name) => name in EXPLAINED).length
  return {
    cases: from === '' ? cases : sum((each) => each.cases),
    unexplained: sum((each) => each.failures - explained(each)),
  }
}

/** Which harm a failing case was is known when somebody has explained it; until then it may be any that its method sees. */
function verdict(harm: Harm, seen: readonly Looked[], totals: Totals): string {
  if (seen.every(({ cases }) => cases === 0)) return 'not looked for yet'
  const found = allFailed(totals).filter((name) => EXPLAINED[name]?.harm === harm).length
  const open = seen.reduce((all, { unexplained }) => all + unexplained, 0)
  const more = open === 0 ? [] : [`up to ${number(open)} that nobody has explained yet`]
  const words = found === 0 ? [] : [`${number(found)}, mended since`]
  return [...words, ...more].join('; ') || '**0**'
}

const allFailed = (totals: Totals): string[] =>
  Object.entries(totals).flatMap(([name, { campaigns }]) => campaigns.flatMap((campaign) => namesOf(name, campaign)))

const namesOf = (method: string, { failed }: CampaignTotal) => failed.map((seed) => `${method} ${seed}`)

function failures(totals: Totals): string {
  const lines = DESCRIBED.flatMap(({ name }) => {
    const total = totals[name]
    if (total === undefined || total.failures === 0) return []
    const failing = total.campaigns.filter((campaign) => campaign.failures > 0)
    const words = failing.map((campaign) => `${number(campaign.failures)} ${inWords(campaign)}`)
    const known = explanations(
      name,
      failing.flatMap(({ failed }) => failed),
    )
    return [
      `- **${name}**: ${number(total.failures)} failing case${total.failures === 1 ? '' : 's'}: ${words.join('; ')}. ${since(total)}${known.join('')}`,
    ]
  })
  return lines.length === 0
    ? 'No campaign that is counted here has a failure.'
    : `Failures, with their seeds:\n\n${lines.join('\n')}`
}

/** Seeds that came to the same have one sentence. */
function explanations(name: string, seeds: readonly number[]): string[] {
  const known = Map.groupBy(seeds, (seed) => EXPLAINED[`${name} ${seed}`]?.words)
  return [...known].flatMap(([words, same]) =>
    words === undefined ? [] : [` Seed${same.length === 1 ? '' : 's'} ${same.join(', ')}: ${words}.`],
  )
}

const inWords = ({ at, commit, first, last, failed }: CampaignTotal) =>
  `in the campaign of ${at.replace('T', ' ')} (commit ${commit}, seed${failed.length === 1 ? '' : 's'} ${failed.join(', ')} of ${first} to ${last})`

function since({ campaigns }: Total): string {
  const after = campaigns.slice(campaigns.findLastIndex((campaign) => campaign.failures > 0) + 1)
  if (after.length === 0) return '**Nothing was run since.**'
  return `Since then ${number(after.reduce((sum, { cases }) => sum + cases, 0))} cases without one.`
}

function methodRows(totals: Totals): string[][] {
  return DESCRIBED.map((described) => {
    const total = totals[described.name]
    const deep =
      described.goals.length === 0
        ? 'all cases of its table'
        : described.goals.map(({ what, goal }) => `${number(goal)} ${what}`).join(', ')
    if (total === undefined || total.cases === 0) return [described.name, 'not run yet', '', '', '', deep, '']
    const times = [recoveredWithin(total, 0.5), recoveredWithin(total, 0.99)]
    const recovered = times[0] === undefined ? '' : times.join(', ')
    return [
      described.name,
      number(total.cases),
      `${number(countedBy(described, total))}${described.counts === undefined ? '' : ` ${described.counts}`}`,
      number(total.failures),
      recovered,
      deep,
      reached(described.goals, total),
    ]
  })
}

function reached(goals: readonly Goal[], total: Total): string {
  if (goals.length === 0) return reachedOfTable(total)
  return goals.map((goal) => `${count(goal.seen(total))} (${percent(goal.seen(total) / goal.goal)})`).join(', ')
}

function reachedOfTable({ cases, campaigns }: Total): string {
  const { whole, now } = progressOf(campaigns)
  if (whole === undefined) return `whole table: no, ${now === undefined ? `${number(cases)} cases` : partInWords(now)}`
  return `whole table: yes, ${partInWords(whole)}${now === undefined ? '' : `; since then ${partInWords(now)}`}`
}

const partInWords = ({ distinct, size, commits }: Progress) =>
  `${number(distinct)} of ${number(size)} distinct cases, at commit${commits.length === 1 ? '' : 's'} ${commits.join(', ')}`

/** Minutes may be a part of one. */
const count = (seen: number) => (Number.isInteger(seen) || seen >= 10 ? number(seen) : seen.toFixed(1))

/** Never rounded up to what was not reached. */
const percent = (share: number) => `${share >= 1 ? number(share * 100) : (Math.floor(share * 1_000) / 10).toString()}%`

function section(
  described: Described,
  total: Total | undefined,
  plotsOf: (described: Described, total: Total) => readonly Plot[],
): string[] {
  const { heading, name, real, wrong } = described
  const words = `**What is real:** ${real}\n\n**What goes wrong:** ${wrong}`
  if (total === undefined || total.cases === 0)
    return [`### ${heading}`, words, `Not run yet: \`npm run faults -- --method ${name}\`.`]
  const plots = plotsOf(described, total)
  return [
    `### ${heading}`,
    words,
    figures(described, total),
    ...(plots.length === 0
      ? []
      : [plots.map(({ file, title }) => `![${title}](reliability/${file}.svg)`).join('\n\n')]),
    table(['campaign', 'commit', 'seeds', 'cases', 'faults', 'failures', 'seconds'], total.campaigns.map(campaignRow)),
  ]
}

function figures(described: Described, total: Total): string {
  const { counts = 'faults' } = described
  const kinds = Object.entries(total.faults).toSorted(([, one], [, other]) => other - one)
  const recovered = recoveredWithin(total, 0.99)
  const peaks = Object.entries(total.peaks).map(([name, value]) => `at most ${value.toLocaleString('en-US')} ${name}`)
  const lines = [
    `${number(total.cases)} ${total.unit} with ${number(total.runs)} runs and ${number(total.effects)} effects; ${number(countedBy(described, total))} ${counts}; ${total.failures === 0 ? 'no failure' : `**${number(total.failures)} failures**`}.`,
    ...(kinds.length === 0
      ? []
      : [`By kind: ${kinds.map(([kind, times]) => `${number(times)} × ${kind}`).join(', ')}.`]),
    ...(recovered === undefined
      ? []
      : [`Recovered: half of the cases ${recoveredWithin(total, 0.5)}, 99 of 100 ${recovered}.`]),
    ...(peaks.length === 0 ? [] : [`Peaks: ${peaks.join(', ')}.`]),
  ]
  return lines.join(' ')
}

const campaignRow = ({ at, commit, first, last, cases, faults, failures: failed, seconds }: CampaignTotal) => [
  at.replace('T', ' '),
  commit,
  `${first} to ${last}`,
  number(cases),
  number(faults),
  number(failed),
  number(seconds),
]
