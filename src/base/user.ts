import { userInfo } from 'node:os'

/** Who runs this process, for the record of what people decide. A container may have a user without a name. */
export function thisUser(): string {
  try {
    return `${userInfo().username} (process ${process.pid})`
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'} (process ${process.pid})`
  }
}
