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
    type: string
    sha256: string
  }[]
  message: string
  msg: string
  code: string
  requestId: string
  errors: { index: number; origin: string; code: string; message: string }[]
}

/** Sends a request to POST /upload and reads its JSON. */
export async function post(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', ...init })
  const body = (await response.json()) as Omit<Answer, 'status' | 'headers'>
  return { status: response.status, headers: response.headers, ...body }
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
