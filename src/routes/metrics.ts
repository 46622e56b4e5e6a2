import type { IncomingMessage, ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type ErrorCode, UploadError } from '../errors.ts'
import type { NamedSlots } from '../flow/slots.ts'
import { readVersion } from '../package.ts'
import type { Uploader } from '../uploader/app.ts'
import { FinalizationPending } from '../uploader/finalize.ts'
import type { Caller, Outcome } from '../uploader/input.ts'
import type { UploadRequest } from '../uploader/request.ts'
import type { SweepListener } from '../uploader/sweep.ts'
import { type Uploaded, upload } from '../uploader/upload.ts'

/** Upper bounds of the histogram, seconds: from what memory takes to what a large file takes over a slow line. */
const DURATIONS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** Figures of one process for Prometheus; a reload of the configuration does not reset them. */
export interface Metrics {
  /** Counts what the sweeper does. */
  readonly sweeping: SweepListener
  /** From now on, the load of this uploader is read, and its destinations are counted from zero. */
  watch(uploader: Uploader): void
  /** Does an upload, and counts its outcomes. */
  measure(request: UploadRequest, uploader: Uploader): Promise<Uploaded>
  /** Counts a request that was refused before its body was read, if that is because of a quota. */
  countQuota(error: unknown, rules: Caller['quotas']): void
  /** Notes that a configuration was read. @param isInUse false when it was refused, and the one before stays */
  reloaded(isInUse: boolean): void
  /** Counts a response. */
  count(req: IncomingMessage, res: ServerResponse): void
  /** The type and the text that Prometheus reads. */
  readonly contentType: string
  read(): Promise<string>
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges whose names end like those of counters: "promtool check metrics" refuses them.
  for (const kind of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  const figures = createFigures(registry)
  let slots: NamedSlots | undefined
  let database: Uploader['database'] | undefined

  function countQuota(error: unknown, rules: Caller['quotas'] = []): void {
    if (!(error instanceof UploadError) || error.code !== 'quota_exceeded') return
    for (const client of new Set(rules.map(({ group }) => group))) figures.quotaRefusals.inc({ client })
  }

  function countFile(outcome: Outcome, destination: string, caller: Caller): void {
    if (!outcome.ok) {
      countQuota(outcome.error, caller.quotas)
      figures.failures.inc({ destination, code: outcome.error.code })
      return
    }
    const at = { destination: outcome.destination }
    figures.files.inc(at)
    figures.bytes.inc(at, outcome.size)
  }

  function look(): void {
    const load = slots?.load()
    figures.running.set(load?.running ?? 0)
    figures.waiting.set(load?.waiting ?? 0)
    figures.storeUp.set(database?.problem() === undefined ? 1 : 0)
  }

  return {
    sweeping: {
      removed: destination => figures.removed.inc({ destination }),
      failed: destination => figures.removalFailures.inc({ destination }),
      due: count => figures.due.set(count),
    },
    watch(uploader) {
      slots = uploader.slots
      database = uploader.database
      // Rates can be told from the first upload on when there is something before it.
      const { files, bytes, pending } = figures
      for (const { id: destination } of uploader.destinations) {
        for (const counter of [files, bytes, pending]) counter.inc({ destination }, 0)
      }
    },
    async measure(request, uploader) {
      const destination = request.destination.id
      const stop = figures.durations.startTimer({ destination })
      let done = 0
      const onOutcome = (outcome: Outcome) => {
        done++
        countFile(outcome, destination, request.caller)
      }
      try {
        return await upload({ ...request, onOutcome }, uploader)
      } catch (error) {
        if (error instanceof FinalizationPending) figures.pending.inc({ destination })
        else figures.failures.inc({ destination, code: codeOf(error) }, request.inputs.length - done)
        throw error
      } finally {
        stop()
      }
    },
    countQuota,
    reloaded(isInUse) {
      figures.reloadWorked.set(isInUse ? 1 : 0)
      if (isInUse) figures.reloadedAt.setToCurrentTime()
    },
    count(req, res) {
      res.once('finish', () => figures.answers.inc({ method: req.method, status: res.statusCode }))
    },
    contentType: registry.contentType,
    read() {
      look()
      return registry.metrics()
    },
  }
}

const codeOf = (error: unknown): ErrorCode => (error instanceof UploadError ? error.code : 'internal_error')

function createFigures(registry: Registry) {
  const registers = [registry]
  const named = (name: string, help: string, labelNames: string[] = []) => ({
    name: `upload_server_${name}`,
    ...{ help, labelNames, registers },
  })
  const counter = (...is: Parameters<typeof named>) => new Counter(named(...is))
  const gauge = (...is: Parameters<typeof named>) => new Gauge(named(...is))
  gauge('build_info', 'Version of the server. Always 1.', ['version']).set({ version: readVersion() }, 1)
  return {
    answers: counter('http_responses_total', 'HTTP responses, by method and status.', ['method', 'status']),
    files: counter('files_stored_total', 'Files stored, by the destination that has them.', ['destination']),
    bytes: counter('stored_bytes_total', 'Bytes of the stored files.', ['destination']),
    failures: counter('file_failures_total', 'Files that were not stored, by destination and error code.', [
      'destination',
      'code',
    ]),
    quotaRefusals: counter(
      'quota_refusals_total',
      'Files that exceeded a quota, and requests that were rejected without being read, by upload key, token or "proxy".',
      ['client'],
    ),
    pending: counter(
      'finalization_failures_total',
      'Uploads whose post-upload steps failed at the first attempt.',
      ['destination'],
    ),
    durations: new Histogram({
      ...named(
        'upload_duration_seconds',
        'Time from the end of the request body to the response, including queueing.',
        ['destination'],
      ),
      buckets: DURATIONS_S,
    }),
    running: gauge('uploads_running', 'Requests being uploaded to a destination.'),
    waiting: gauge('uploads_waiting', 'Requests queued for a destination.'),
    removed: counter('files_removed_total', 'Expired files that were deleted, by destination.', [
      'destination',
    ]),
    removalFailures: counter(
      'removal_failures_total',
      'Failed attempts to delete expired files, by destination.',
      ['destination'],
    ),
    due: gauge('files_due', 'Expired files that still existed at the last sweep, up to 10,000.'),
    storeUp: gauge('database_up', '1, or 0 while uploads fail because the database cannot be written.'),
    reloadWorked: gauge(
      'config_last_reload_successful',
      '1, or 0 if the last reload of the configuration was rejected.',
    ),
    reloadedAt: gauge(
      'config_last_reload_success_timestamp_seconds',
      'Time at which the configuration in use was loaded, in seconds since the epoch.',
    ),
  }
}
