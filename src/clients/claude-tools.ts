/** Tools of Claude Code that touch nothing outside of its session, or only look. Every other one writes. */
const LOOKS = 'Read Glob Grep LS NotebookRead ListMcpResourcesTool ReadMcpResourceTool ToolSearch BashOutput'
const OF_THE_SESSION = 'TodoRead TodoWrite TaskCreate TaskGet TaskList TaskUpdate TaskOutput AskUserQuestion'
/** What they start is asked for by itself. */
const STARTS = 'Task Agent Skill EnterPlanMode ExitPlanMode'
const READS = new Set([LOOKS, OF_THE_SESSION, STARTS].flatMap((names) => names.split(' ')))

export const claudeEffect = (tool: string): 'read' | 'write' => (READS.has(tool) ? 'read' : 'write')
