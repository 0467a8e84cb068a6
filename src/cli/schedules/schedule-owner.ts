import { HoldfastError } from '../../base/errors.ts'
import type { Context, Operator } from '../around/context.ts'
import { namedThread, selfThread } from '../around/self.ts'

/** What a run asks for is its own. */
export const askingRun = ({ environment }: Operator): { readonly run?: string } =>
  environment.run === undefined ? {} : { run: environment.run }

/** Who is told what becomes of it: the thread that this is called from, unless somebody is named. */
export async function askedBy(
  operator: Operator,
  given?: string,
): Promise<{ readonly owner?: string; readonly run?: string }> {
  const owner = given === undefined ? await ownThread(operator) : await namedThread(operator, given)
  return { ...(owner === undefined ? {} : { owner }), ...askingRun(operator) }
}

const NOBODY = ['usage/no-self', 'not-found/self', 'usage/ambiguous']

/** Undefined: this process belongs to no thread that is known here. */
const ownThread = async ({ environment, local }: Operator): Promise<string | undefined> =>
  local === undefined ? environment.thread : threadOfHere(local)

/** What a run starts is never taken for a person. */
async function threadOfHere(context: Context): Promise<string | undefined> {
  try {
    return (await selfThread(context)).id
  } catch (error) {
    const isPerson = context.environment.run === undefined
    if (isPerson && error instanceof HoldfastError && NOBODY.includes(error.code)) return undefined
    throw error
  }
}
