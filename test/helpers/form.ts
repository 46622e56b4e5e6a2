import { expectDescribed } from './contract.ts'

/** The answer of POST /upload. */
export interface Answer {
  status: number
  headers: Headers
  success: boolean
  result: string[]
  items: {
    index: number
    origin: string
    imgUrl: string
    fileName: string
    size: number
    provider: string
    type: string
    contentType: string
    sha256: string
  }[]
  message: string
  msg: string
  code: string
  requestId: string
  errors: { index: number; origin: string; code: string; message: string }[]
}

/** Sends a request to POST /upload, reads its JSON and holds it to the description of the API. */
export async function post(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', ...init })
  const { status, headers } = response
  const body = await response.text()
  const { pathname: target } = new URL(url)
  expectDescribed({
    method: init.method ?? 'POST',
    target,
    status,
    contentType: headers.get('content-type'),
    body,
  })
  return { status, headers, ...(JSON.parse(body) as Omit<Answer, 'status' | 'headers'>) }
}

/** A multipart body with these files, by name. */
export function formOf(files: Record<string, Uint8Array | string>, field = 'file'): FormData {
  const form = new FormData()
  for (const [name, content] of Object.entries(files))
    form.append(field, new Blob([typeof content === 'string' ? content : Buffer.from(content)]), name)
  return form
}

/** Uploads files in one form. */
export function upload(url: string, files: Record<string, Uint8Array | string>): Promise<Answer> {
  return post(url, { body: formOf(files) })
}

/** A JSON body that lists paths or addresses. */
export function list(...entries: unknown[]): RequestInit {
  return { body: JSON.stringify({ list: entries }), headers: { 'Content-Type': 'application/json' } }
}

/** The bytes behind a link. */
export async function download(url: string): Promise<Buffer> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}
