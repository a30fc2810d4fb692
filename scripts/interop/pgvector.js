// A Postgres with the extension pgvector, for one connection, until its process ends. It prints where.
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

const server = new PGLiteSocketServer({ db: await PGlite.create({ extensions: { vector } }), host: '127.0.0.1', port: 0 })
server.addEventListener('listening', (event) => console.log(`${event.detail.host}:${event.detail.port}`))
await server.start()
