/** What is used of file-type. The build puts it into this one module: by itself file-type loads 45 files. */
export { fileTypeFromBuffer } from 'file-type'
