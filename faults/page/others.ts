/** What others publish about faults, each with its source. "Nothing found" is what a search of November 2026 came to, not a judgement. */
export interface Other {
  readonly what: string
  readonly how: string
  readonly figures: string
  readonly source: readonly [words: string, url: string]
}

export const OTHERS: readonly Other[] = [
  {
    what: 'Temporal',
    how: 'a guide for its users: which failures to inject before production',
    figures: 'nothing found about its own runs under faults',
    source: ['Pre-production testing', 'https://docs.temporal.io/best-practices/pre-production-testing'],
  },
  {
    what: 'Restate',
    how: 'a Jepsen suite for the server and its SDK services, in the open',
    figures: 'nothing found: the suite is public, its counts are not on its page',
    source: ['restatedev/jepsen', 'https://github.com/restatedev/jepsen'],
  },
  {
    what: 'DBOS',
    how: 'an article on how a library for durable workflows is tested: failures by induced randomness, on a real PostgreSQL',
    figures: 'nothing found',
    source: ['How to test durable execution', 'https://www.dbos.dev/blog/how-to-test-durable-execution'],
  },
  {
    what: 'Inngest',
    how: 'post-mortems of incidents of its service',
    figures: 'nothing found about runs under faults',
    source: ['a post-mortem of 2023', 'https://www.inngest.com/blog/postmortem-2023-08-31'],
  },
  {
    what: 'BullMQ, pg-boss, Graphile Worker, absurd, LangGraph, Vercel Workflow',
    how: 'we killed their workers ourselves, once, in the benchmark',
    figures: 'steps that ran twice and runs that stayed stuck, under W5',
    source: ['performance.md', 'performance.md'],
  },
  {
    what: 'NATS JetStream (a queue)',
    how: 'a Jepsen analysis, by others',
    figures:
      'acknowledged writes lost after power failures, because they were synced every two minutes; documented since',
    source: ['Jepsen: NATS 2.12.1', 'https://jepsen.io/analyses/nats-2.12.1'],
  },
  {
    what: 'TigerBeetle (a database)',
    how: 'a deterministic simulator of the whole cluster, replayed by seed and commit; a Jepsen analysis, by others',
    figures: 'Jepsen: two safety issues and seven crashes in 0.16.11 to 0.16.30; of all issues one was open in 0.16.45',
    source: ['Jepsen: TigerBeetle 0.16.11', 'https://jepsen.io/analyses/tigerbeetle-0.16.11'],
  },
  {
    what: 'FoundationDB (a database)',
    how: 'a deterministic simulation of the whole cluster in one thread',
    figures: 'tens of thousands of simulations a night, an estimated trillion CPU-hours in all',
    source: ['Simulation and Testing', 'https://apple.github.io/foundationdb/testing.html'],
  },
  {
    what: 'SQLite (a database)',
    how: 'out of memory, I/O errors, crashes and power loss at each operation; fuzzing',
    figures: 'every branch of the core covered; hundreds of millions of tests in the soak before a release',
    source: ['How SQLite is tested', 'https://www.sqlite.org/testing.html'],
  },
]
