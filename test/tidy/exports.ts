import { allNodes, parse, type Node } from './syntax.ts'
import type { SourceFile } from './tree.ts'

/** The names that a file exports, types too, sorted. `export *` is refused: nobody can see what it lets out. */
export function exportedNames(file: SourceFile): string[] {
  const program = parse(file)
  if (allNodes(program, 'ExportAllDeclaration').length > 0) {
    throw new Error(`${file.path} has "export *": name what is public`)
  }
  return allNodes(program, 'ExportNamedDeclaration').flatMap(namesIn).toSorted()
}

function namesIn(node: Node): string[] {
  const declaration = node['declaration'] as Node | null
  const specifiers = node['specifiers'] as readonly { readonly exported: { readonly name: string } }[]
  const declared = declaration === null ? [] : ((declaration['declarations'] as Node[] | undefined) ?? [declaration])
  return [
    ...specifiers.map((specifier) => specifier.exported.name),
    ...declared.map((each) => String((each['id'] as Node)['name'])),
  ]
}
