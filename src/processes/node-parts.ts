/*
 * Parts of Node that take longer to load than most commands run, some 7 ms and half a megabyte together: for whoever starts a process or
 * opens a socket, and not for everybody who might.
 */

export const childProcess = () => process.getBuiltinModule('node:child_process')

export const net = () => process.getBuiltinModule('node:net')
