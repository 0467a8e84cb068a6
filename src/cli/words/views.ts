import type { Answer } from '../../api/routes.ts'

/** What the API answers: the commands show nothing else, so they show the same wherever it comes from. */
export type RunView = Answer<'runs.list'>['items'][number]
export type WholeRunView = Answer<'runs.show'>
export type StepView = Answer<'threads.show'>['conversation'][number]
export type ActionView = Answer<'actions.show'>
export type EventView = Answer<'runs.events'>['items'][number]
export type ThreadView = Answer<'threads.show'>
export type BranchView = Answer<'threads.tree'>
export type MessageView = Answer<'messages.show'>
export type ApprovalView = Answer<'approvals.show'>
export type DoubtView = Answer<'doubts.show'>
export type ScheduleView = ThreadView['schedules'][number]
export type OccurrenceView = Answer<'occurrences.show'>
export type StatementView = Answer<'runs.statement'>
export type WorkspaceView = Answer<'workspaces.show'>
export type WaitsFor = NonNullable<WholeRunView['waitsFor']>
