// Reads the feed of a catalog from standard input and validates it with libxml2 against the schema in the argument.
import { readFile } from 'node:fs/promises'
import { validateXML } from 'xmllint-wasm'

const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const result = await validateXML({
  xml: [{ fileName: 'feed.xml', contents: Buffer.concat(chunks).toString('utf8') }],
  schema: [{ fileName: 'catalog.xsd', contents: await readFile(process.argv[2], 'utf8') }],
})
if (!result.valid) {
  console.error(result.rawOutput)
  process.exit(1)
}
console.log('valid')
