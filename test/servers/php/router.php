<?php
// Takes uploads with PHP's own parser, keeps them below the document root, and hands them out again.
$root = $_SERVER['DOCUMENT_ROOT'];
$path = explode('?', $_SERVER['REQUEST_URI'])[0];
$base = 'http://' . $_SERVER['HTTP_HOST'];
$method = $_SERVER['REQUEST_METHOD'];

function answer(int $status, $body, array $headers = []): never
{
    http_response_code($status);
    header('Content-Type: ' . (is_string($body) ? 'text/plain' : 'application/json'));
    foreach ($headers as $name => $value) header("$name: $value");
    echo is_string($body) ? $body : json_encode($body);
    exit;
}

function hand_out(string $file): never
{
    if (!is_file($file)) answer(404, 'not there');
    header('Content-Type: application/octet-stream');
    header('Content-Length: ' . filesize($file));
    readfile($file);
    exit;
}

// Keeps the one file of a form and gives its address.
function keep(string $field): string
{
    global $root, $base;
    $error = $_FILES[$field]['error'] ?? null;
    if ($error !== UPLOAD_ERR_OK) answer(400, ['success' => false, 'message' => "no file in $field: " . json_encode($error)]);
    $id = bin2hex(random_bytes(8));
    move_uploaded_file($_FILES[$field]['tmp_name'], "$root/$id");
    return "$base/files/$id";
}

if ($method === 'GET' && preg_match('#^/files/(\w+)$#', $path, $found)) hand_out("$root/$found[1]");

// The key of an object is the path: names of any kind, one file for each.
if (str_starts_with($path, '/put/')) {
    $file = "$root/put-" . sha1(rawurldecode($path));
    if ($method === 'GET') hand_out($file);
    if (($_SERVER['HTTP_AUTHORIZATION'] ?? '') !== 'Basic ' . base64_encode('somebody:a right password')) answer(401, 'who are you?');
    $part = "$file." . bin2hex(random_bytes(4));
    file_put_contents($part, fopen('php://input', 'r'));
    rename($part, $file);
    answer(201, '', ['Location' => $path]);
}

if ($path === '/up') {
    if (($_SERVER['HTTP_X_API_KEY'] ?? '') !== 'a right key') answer(401, ['error' => ['message' => 'this key is not known: ' . ($_SERVER['HTTP_X_API_KEY'] ?? '')]]);
    answer(200, ['ok' => 1, 'data' => ['files' => [['url' => keep('file'), 'delete' => "$base/delete"]]]]);
}

// Everything PHP has understood of a request.
if ($path === '/echo') {
    $files = array_map(fn($file) => [...$file, 'sha256' => hash_file('sha256', $file['tmp_name']), 'tmp_name' => null], $_FILES);
    answer(200, [
        'url' => $base . '/files/none', 'method' => $method, 'query' => $_GET, 'fields' => $_POST, 'files' => $files,
        'headers' => array_change_key_case(getallheaders()), 'body' => $_FILES ? null : hash('sha256', file_get_contents('php://input')),
    ]);
}

answer(404, 'no such page');
