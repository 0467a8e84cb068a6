import type { SourceFile } from './tree.ts'

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>
}

/**
 * Packages for other machines that the lockfile leaves out. npm drops what it cannot find when it writes the file, and then
 * `npm ci` refuses the file: pin a version whose packages are all there.
 */
export function leftOut(lockfile: SourceFile): string[] {
  const { packages } = JSON.parse(lockfile.text) as Lockfile
  const locked = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13)))
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !locked.has(name))
      .map((name) => `${path} wants ${name}`),
  )
}

/** Lines of a lockfile or of npm's configuration that tie the clone to one registry. */
export function registryTies(files: readonly SourceFile[]): string[] {
  const tie = /"resolved": "https?:|^\s*(@[\w-]+:)?registry\s*=|_authToken/
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => (tie.test(line) ? [`${path}:${index + 1} ties us to a registry`] : [])),
  )
}
