import { HoldfastError } from '../../base/errors.ts'

/** What an option says, as JSON. */
export function jsonOption(flag: string, text: string, example: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    const remedy = `quote it for the shell, as in ${flag} '${example}'`
    throw new HoldfastError('usage/json', `${flag} is not JSON`, { remedy, cause })
  }
}
