<?php
// Everything PHP has understood of a request, by its own parser.
$files = array_map(fn($file) => [...$file, 'sha256' => hash_file('sha256', $file['tmp_name']), 'tmp_name' => null], $_FILES);
header('Content-Type: application/json');
echo json_encode([
    'url' => 'http://' . $_SERVER['HTTP_HOST'] . '/none', 'method' => $_SERVER['REQUEST_METHOD'],
    'query' => $_GET, 'fields' => $_POST, 'files' => $files, 'headers' => array_change_key_case(getallheaders()),
    'body' => $_FILES ? null : hash('sha256', file_get_contents('php://input')),
]);
